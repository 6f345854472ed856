import type { TimeWindow } from "../api/request-match.ts";

const DAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
const MINUTES_OF_DAY = 1440;
const MINUTE_MS = 60_000;

/** Compiles a window to a test of a moment (milliseconds since 1970). Throws a message for the author. */
export function compileTimeWindow(window: TimeWindow): (epochMs: number) => boolean {
  const clock = wallClock(window.timeZone ?? "UTC");
  const from = minutes(window.from ?? "00:00");
  const to = minutes(window.to ?? "24:00");
  const days = window.days && new Set(window.days.flatMap(expandDays));
  const dates = window.dates && new Set(window.dates);
  const onDay = ({ year, date, day }: WallDay) =>
    (days === undefined || days.has(day)) && (dates === undefined || dates.has(date) || dates.has(`${year}-${date}`));
  const test = (epochMs: number) => {
    const { minute, ...today } = clock(epochMs);
    if (from < to) return minute >= from && minute < to && onDay(today);
    // Past midnight the window belongs to the day on which it began.
    if (minute >= from) return onDay(today);
    return minute < to && onDay(clock(epochMs - (minute + 1) * MINUTE_MS));
  };
  // Wall clocks are slow to ask; no window changes within a minute.
  let asked = Number.NaN;
  let answer = false;
  return (epochMs) => {
    const minute = Math.floor(epochMs / MINUTE_MS);
    if (minute !== asked) {
      asked = minute;
      answer = test(epochMs);
    }
    return answer;
  };
}

interface WallDay {
  year: string;
  /** `MM-DD` */
  date: string;
  day: string;
}

function wallClock(timeZone: string): (epochMs: number) => WallDay & { minute: number } {
  let format: Intl.DateTimeFormat;
  try {
    format = new Intl.DateTimeFormat("en-US", {
      timeZone,
      hourCycle: "h23",
      year: "numeric",
      month: "2-digit",
      day: "2-digit",
      hour: "2-digit",
      minute: "2-digit",
      weekday: "short",
    });
  } catch {
    throw new Error(`unknown time zone \`${timeZone}\`; write an IANA name such as Europe/Zurich`);
  }
  return (epochMs) => {
    const parts = Object.fromEntries(format.formatToParts(epochMs).map(({ type, value }) => [type, value]));
    return {
      year: parts.year ?? "",
      date: `${parts.month}-${parts.day}`,
      day: (parts.weekday ?? "").toLowerCase(),
      minute: Number(parts.hour) * 60 + Number(parts.minute),
    };
  };
}

function minutes(time: string): number {
  const [hours, rest] = time.split(":");
  return Math.min(MINUTES_OF_DAY, Number(hours) * 60 + Number(rest));
}

/** `fri-mon` is Friday, Saturday, Sunday, Monday. */
function expandDays(range: string): string[] {
  const [first = "", last = first] = range.split("-");
  const start = DAYS.indexOf(first);
  const length = ((DAYS.indexOf(last) - start + 7) % 7) + 1;
  return Array.from({ length }, (_, i) => DAYS[(start + i) % 7] ?? "");
}
