import type { QueueOperator } from '../../runs/queue-operator.ts'
import type { Context } from './command.ts'
import { read } from './command.ts'
import { pausable } from './pausable.ts'

const queue = pausable('queue', queuesOf)

export const queueCommands = {
  'queue.list': read({
    summary: 'queues of runs, with their limits and what waits in each',
    arguments: {},
    needs: ['runs'],
    path: '/queues',
    read: (context) => queuesOf(context).list(),
  }),
  'queue.pause': queue.pause('let no run of a queue begin until it is resumed; those that have begun continue'),
  'queue.resume': queue.resume('let runs of a queue begin again'),
}

/** Commands are run only where what they need is there. */
function queuesOf({ admin }: Context): QueueOperator {
  return admin.queues as QueueOperator
}
