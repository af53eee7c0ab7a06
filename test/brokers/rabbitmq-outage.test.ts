import { proveOutage } from './outage.ts'
import { openRabbitmqWorld } from './rabbitmq-world.ts'

proveOutage('rabbitmq', openRabbitmqWorld)
