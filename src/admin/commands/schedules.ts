import type { ScheduleOperator } from '../../runs/schedule-operator.ts'
import { optional, text } from './argument.ts'
import type { Context } from './command.ts'
import { act, given, read } from './command.ts'
import { pausable } from './pausable.ts'

const schedule = pausable('schedule', schedulesOf)

export const scheduleCommands = {
  schedules: read({
    summary: 'schedules, with the next tick of each',
    arguments: {},
    needs: ['runs'],
    path: '/schedules',
    read: (context) => schedulesOf(context).list(),
  }),
  'schedule.pause': schedule.pause('let a schedule start nothing until it is resumed'),
  'schedule.resume': schedule.resume('continue a schedule with its next tick'),
  'schedule.trigger': act({
    summary: 'start a run of a schedule now, beside its ticks',
    arguments: { name: schedule.name, id: optional(text('names this start: the same one again starts nothing')) },
    words: ['name'],
    needs: ['runs'],
    find: schedule.find,
    target: (args) => ({ name: args.name }),
    question: (_args, found) => `Start a run of ${found.run} by the schedule ${found.name}?`,
    async act(context, { name, id }) {
      return { done: true, name, runId: await schedulesOf(context).trigger(name, given({ id })) }
    },
  }),
}

/** Commands are run only where what they need is there. */
function schedulesOf({ admin }: Context): ScheduleOperator {
  return admin.schedules as ScheduleOperator
}
