import { natsUrl, openNatsWorld, PATIENT_ACK_WAIT_MS } from '../../../support/events/brokers/nats-world.ts'
import { proveBroker } from '../../../support/events/brokers/suite.ts'

proveBroker({
  name: 'nats',
  skip: natsUrl === undefined && 'there is no NATS server',
  open: (crashes) => openNatsWorld(natsUrl ?? '', crashes ? undefined : PATIENT_ACK_WAIT_MS),
})
