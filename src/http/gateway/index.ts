/** `onceonly/gateway`: what the command `onceonly gateway` runs, for programs that want it inside of themselves. */

export { checkGatewayConfig } from './check.ts'
export type { CallerSource, ConsoleConfig, GatewayConfig, JwksConfig, RouteRule, Timeouts } from './config.ts'
export type { GatewayConsole, OpenConsole } from './console.ts'
export type { Gateway, GatewayOptions, Listening } from './gateway.ts'
export { createGateway } from './gateway.ts'
export type { GatewayLoad } from './intake.ts'
export { gatewayLabels } from './labels.ts'
export type { Metrics } from './metrics.ts'
export type { AccessEvent, GatewayDecision, GatewayEvent, OperatorActed } from './watch.ts'
