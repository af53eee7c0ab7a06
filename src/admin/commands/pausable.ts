import { text } from './argument.ts'
import type { Context } from './command.ts'
import { act } from './command.ts'
import { notFound } from './refusal.ts'

interface PauseOperator<Found> {
  list(): Promise<readonly Found[]>
  pause(name: string): Promise<void>
  resume(name: string): Promise<void>
}

/** The commands of what has a name and can be paused: queues of runs, and schedules. */
export function pausable<Found extends { readonly name: string; readonly paused: boolean }>(
  what: string,
  operatorOf: (context: Context) => PauseOperator<Found>,
) {
  const name = text(`the ${what}`)

  async function find(context: Context, { name }: { readonly name: string }): Promise<Found> {
    const found = (await operatorOf(context).list()).find((each) => each.name === name)
    if (found === undefined) throw notFound(`There is no ${what} ${name}.`)
    return found
  }

  function command(how: 'pause' | 'resume', verb: string, summary: string) {
    return act({
      summary,
      arguments: { name },
      words: ['name'],
      needs: ['runs'],
      find,
      target: (args) => ({ name: args.name }),
      question: (_args, found) => `${verb} the ${what} ${found.name}, which is ${found.paused ? 'paused' : 'active'}?`,
      async act(context, args) {
        await operatorOf(context)[how](args.name)
        return { done: true, name: args.name }
      },
    })
  }

  return {
    name,
    find,
    pause: (summary: string) => command('pause', 'Pause', summary),
    resume: (summary: string) => command('resume', 'Resume', summary),
  }
}
