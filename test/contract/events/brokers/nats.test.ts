import { natsUrl, openNatsWorld } from '../../../support/events/brokers/nats-world.ts'
import { proveBroker } from '../../../support/events/brokers/suite.ts'

proveBroker({
  name: 'nats',
  skip: natsUrl === undefined && 'there is no NATS server',
  open: () => openNatsWorld(natsUrl ?? ''),
})
