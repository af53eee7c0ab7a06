import type { ScheduleOperator } from '../../runs/schedule-operator.ts'
import { optional, text } from './argument.ts'
import type { Context } from './command.ts'
import { act, given, read } from './command.ts'
import { notFound } from './refusal.ts'

const name = text('the schedule')

export const scheduleCommands = {
  schedules: read({
    summary: 'schedules, with the next tick of each',
    arguments: {},
    needs: ['runs'],
    path: '/schedules',
    read: (context) => schedulesOf(context).list(),
  }),
  'schedule.pause': onSchedule('pause', 'Pause', 'let a schedule start nothing until it is resumed'),
  'schedule.resume': onSchedule('resume', 'Resume', 'continue a schedule with its next tick'),
  'schedule.trigger': act({
    summary: 'start a run of a schedule now, beside its ticks',
    arguments: { name, id: optional(text('names this start: the same one again starts nothing')) },
    words: ['name'],
    needs: ['runs'],
    find: findSchedule,
    target: (args) => ({ name: args.name }),
    question: (_args, found) => `Start a run of ${found.run} by the schedule ${found.name}?`,
    async act(context, { name, id }) {
      return { done: true, name, runId: await schedulesOf(context).trigger(name, given({ id })) }
    },
  }),
}

function onSchedule(how: 'pause' | 'resume', verb: string, summary: string) {
  return act({
    summary,
    arguments: { name },
    words: ['name'],
    needs: ['runs'],
    find: findSchedule,
    target: (args) => ({ name: args.name }),
    question: (_args, found) => `${verb} the schedule ${found.name}, which is ${found.paused ? 'paused' : 'active'}?`,
    async act(context, args) {
      await schedulesOf(context)[how](args.name)
      return { done: true, name: args.name }
    },
  })
}

async function findSchedule(context: Context, { name }: { readonly name: string }) {
  const found = (await schedulesOf(context).list()).find((each) => each.name === name)
  if (found === undefined) throw notFound(`There is no schedule ${name}.`)
  return found
}

/** Commands are run only where what they need is there. */
function schedulesOf({ admin }: Pick<Context, 'admin'>): ScheduleOperator {
  return admin.schedules as ScheduleOperator
}
