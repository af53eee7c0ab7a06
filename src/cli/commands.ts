/** Answers the exit status: 0 when all is well, 1 when something was found, 2 when nothing could be done. */
export type Run = (args: readonly string[]) => Promise<number>

export interface Command {
  /** What stands behind the name on the line of help. */
  readonly usage: string
  /** What it answers or does, in one line. */
  readonly about: string
  /** Loaded only when it is asked for, so that `--help` is quick and a command needs only what it needs. */
  load(): Promise<Run>
}

/** Every command, in the order of the help. */
export const commands: Readonly<Record<string, Command>> = {
  replay: {
    usage: 'RUN_ID… | --all',
    about: "what today's code makes of these runs: a diff, step by step; nothing is performed",
    load: async () => (await import('./replay.ts')).replayCommand,
  },
  gateway: {
    usage: '--upstream URL',
    about: 'stands in front of an HTTP service and makes it safe to retry',
    load: async () => (await import('./gateway.ts')).gatewayCommand,
  },
}
