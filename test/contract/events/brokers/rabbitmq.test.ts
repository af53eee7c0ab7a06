import { openRabbitmqWorld, rabbitmqUrl } from '../../../support/events/brokers/rabbitmq-world.ts'
import { proveBroker } from '../../../support/events/brokers/suite.ts'

proveBroker({
  name: 'rabbitmq',
  skip: rabbitmqUrl === undefined && 'there is no RabbitMQ server',
  open: () => openRabbitmqWorld(rabbitmqUrl ?? ''),
})
