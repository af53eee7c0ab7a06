import { describeImports } from '../../support/service/imports/scenarios.ts'

// With a broker: in the slow tier.
describeImports(['sqlite'])
