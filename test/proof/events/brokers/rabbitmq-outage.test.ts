import { openRabbitmqWorld } from '../../../support/events/brokers/rabbitmq-world.ts'
import { proveOutage } from './outage.ts'

proveOutage('rabbitmq', openRabbitmqWorld)
