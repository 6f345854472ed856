/** What the gateway is to do, free of Kubernetes on one side and of Envoy on the other. Plain data, golden-tested. */
export interface GatewayIr {
  readonly listeners: readonly IrListener[];
  readonly pools: readonly IrPool[];
  readonly providers: readonly IrProvider[];
}

export interface IrListener {
  readonly name: string;
  readonly address: string;
  readonly port: number;
  readonly hosts: readonly IrHost[];
}

export interface IrHost {
  readonly name: string;
  readonly domains: readonly string[];
  readonly routes: readonly IrRoute[];
}

export interface IrRoute {
  /** The HTTPRoute's `namespace/name`, by which the handler knows what applies; "" for the default route. */
  readonly name: string;
  readonly match: {
    readonly path: string;
    readonly exact: boolean;
    readonly headers: readonly { name: string; value: string }[];
  };
  /** Where requests go when the handler names nothing else, which only a pool that fails open allows. */
  readonly pools: readonly { cluster: string; weight: number }[];
  readonly failOpen: boolean;
}

export interface IrPool {
  readonly cluster: string;
  /** Addresses are IPs. */
  readonly endpoints: readonly { host: string; port: number }[];
}

export interface IrProvider {
  readonly cluster: string;
  readonly host: string;
  readonly port: number;
  readonly tls: boolean;
  readonly connectTimeoutMs: number;
  /** The client's own credentials never leave: this takes their place. */
  readonly credential: { readonly header: string; readonly value: string } | undefined;
}
