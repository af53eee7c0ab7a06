/** Plain proxies, fast in what they are fast in: one on Node's own client, one on undici. */
export const peers = ['httpxy', 'fast-proxy'] as const

export type PeerName = (typeof peers)[number]

/** Which proxy stands in front of the service. */
export type ProxyTask =
  | { readonly kind: 'ours'; readonly path: string }
  | { readonly kind: 'peer'; readonly peer: PeerName }

export interface GatewayTask {
  readonly callers: number
  readonly warmUpMs: number
  /** So many, however slow the machine is: what is not compiled yet is several times as slow. */
  readonly warmUpRequests: number
  readonly measureMs: number
  readonly method: 'GET' | 'POST'
  readonly proxy: ProxyTask
}

export const PATH = '/orders'

/** Asked of the service itself at the end, past the clock: what really reached it. */
export const COUNT_PATH = '/effects'
