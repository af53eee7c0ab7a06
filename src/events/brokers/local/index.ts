export type { LocalBus, LocalBusEvent, LocalBusOptions } from './bus.ts'
export { createLocalBus } from './bus.ts'
