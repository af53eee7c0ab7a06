import { openRabbitmqWorld, rabbitmqUrl } from './rabbitmq-world.ts'
import { proveBroker } from './suite.ts'

proveBroker({
  name: 'rabbitmq',
  skip: rabbitmqUrl === undefined && 'there is no RabbitMQ server',
  open: () => openRabbitmqWorld(rabbitmqUrl ?? ''),
})
