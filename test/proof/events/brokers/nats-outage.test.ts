import { openNatsWorld } from '../../../support/events/brokers/nats-world.ts'
import { proveOutage } from './outage.ts'

proveOutage('nats', openNatsWorld)
