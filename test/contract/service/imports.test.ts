import { describeImports } from '../../support/service/imports/scenarios.ts'

// RabbitMQ needs most of the time of all three: it is in the slow tier.
describeImports(['sqlite', 'nats'])
