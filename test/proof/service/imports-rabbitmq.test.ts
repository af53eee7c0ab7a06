import { describeImports } from '../../support/service/imports/scenarios.ts'

describeImports(['rabbitmq'])
