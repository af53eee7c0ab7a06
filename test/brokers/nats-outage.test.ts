import { openNatsWorld } from './nats-world.ts'
import { proveOutage } from './outage.ts'

proveOutage('nats', openNatsWorld)
