import type { Arguments } from '../commands/argument.ts'
import { commandTable } from '../commands/table.ts'
import { commonArguments } from './operator.ts'
import { checklistArguments, doctorArguments, gatewayArguments, replayArguments } from './program-arguments.ts'

/** The options of every command, by its name. */
export type Listing = ReadonlyMap<string, Arguments>

/** A command that is more than a question or an action on a store. */
export interface Program {
  readonly summary: string
  readonly details?: string
  readonly arguments: Arguments
  readonly words?: readonly string[]
  /** Options that it shares with the commands on a store. */
  readonly common?: Arguments
  /** Loaded only when it is run, so that help is quick. Answers the exit status. */
  load(): Promise<(values: never, listing: Listing) => Promise<number>>
}

export const programs: Readonly<Record<string, Program>> = {
  doctor: {
    ...commandTable.doctor,
    arguments: doctorArguments,
    common: commonArguments,
    load: async () => (await import('./doctor.ts')).doctorProgram,
  },
  checklist: {
    ...commandTable.checklist,
    arguments: checklistArguments,
    load: async () => (await import('./checklist.ts')).checklistProgram,
  },
  replay: {
    summary: "what today's code makes of recorded runs: a diff, step by step",
    details: `Nothing is performed: the code runs in a process of its own, without your environment, and without a network where
the system allows it. A run that cannot be replayed is reported and counted, and the others are replayed. With --all,
runs that ended too long ago or were swept meanwhile are only counted.

Exits with 1 when a run diverged or could not be replayed, with 2 when none could be.`,
    arguments: replayArguments,
    words: ['runs'],
    load: async () => (await import('./replay.ts')).replayProgram,
  },
  gateway: {
    summary: 'a reverse proxy that makes an HTTP service safe to retry',
    details: `A request that changes something and carries an Idempotency-Key is forwarded once, and its retries are answered from
the record. Without rules every POST, PUT, PATCH and DELETE with a key is protected; a retry is answered to the
credential of the first request.

Ends on SIGTERM or SIGINT as soon as the requests under way are answered. Ready: GET /.onceonly/ready
Metrics, for this machine or with the configured token: GET /.onceonly/metrics`,
    arguments: gatewayArguments,
    load: async () => (await import('./gateway.ts')).gatewayProgram,
  },
  completion: {
    summary: 'a script that completes names and options in bash',
    details: 'Add `source <(onceonly completion)` to your ~/.bashrc.',
    arguments: {},
    load: async () => {
      const { completionScript } = await import('./completion.ts')
      return async (_values, listing) => {
        process.stdout.write(completionScript(listing))
        return 0
      }
    },
  },
}
