import { describeImports } from '../../support/service/imports/scenarios.ts'

// RabbitMQ needs most of the time of all three.
describeImports(['rabbitmq', 'nats'])
