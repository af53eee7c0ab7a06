import type { QueueOperator } from '../../runs/queue-operator.ts'
import { text } from './argument.ts'
import type { Context } from './command.ts'
import { act, read } from './command.ts'
import { notFound } from './refusal.ts'

const name = text('the queue')

export const queueCommands = {
  'queue.list': read({
    summary: 'queues of runs, with their limits and what waits in each',
    arguments: {},
    needs: ['runs'],
    path: '/queues',
    read: (context) => queuesOf(context).list(),
  }),
  'queue.pause': onQueue(
    'pause',
    'Pause',
    'let no run of a queue begin until it is resumed; those that have begun continue',
  ),
  'queue.resume': onQueue('resume', 'Resume', 'let runs of a queue begin again'),
}

function onQueue(how: 'pause' | 'resume', verb: string, summary: string) {
  return act({
    summary,
    arguments: { name },
    words: ['name'],
    needs: ['runs'],
    find: findQueue,
    target: (args) => ({ name: args.name }),
    question: (_args, found) => `${verb} the queue ${found.name}, which is ${found.paused ? 'paused' : 'active'}?`,
    async act(context, args) {
      await queuesOf(context)[how](args.name)
      return { done: true, name: args.name }
    },
  })
}

async function findQueue(context: Context, { name }: { readonly name: string }) {
  const found = (await queuesOf(context).list()).find((each) => each.name === name)
  if (found === undefined) throw notFound(`There is no queue ${name}.`)
  return found
}

/** Commands are run only where what they need is there. */
function queuesOf({ admin }: Pick<Context, 'admin'>): QueueOperator {
  return admin.queues as QueueOperator
}
