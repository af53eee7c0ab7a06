import { natsUrl, openNatsWorld } from './nats-world.ts'
import { proveBroker } from './suite.ts'

proveBroker({
  name: 'nats',
  skip: natsUrl === undefined && 'there is no NATS server',
  open: () => openNatsWorld(natsUrl ?? ''),
})
