import { isOnceError } from '../core/errors.ts'
import { replayCommand } from './replay.ts'
import { Usage } from './usage.ts'

const HELP = `onceonly COMMAND

  replay RUN_ID…     what today's code makes of these runs: a diff, step by step; nothing is performed
  replay --all       the same for many runs; \`onceonly replay --help\` tells more
`

/** The exit status: 0 when all is well, 1 when something was found, 2 when nothing could be done. */
export async function command(args: readonly string[]): Promise<number> {
  const [name, ...rest] = args
  try {
    switch (name) {
      case 'replay':
        return await replayCommand(rest)
      case undefined:
      case 'help':
      case '--help':
        process.stdout.write(HELP)
        return name === undefined ? 2 : 0
      default:
        throw new Usage(`There is no command \`${name}\`. \`onceonly --help\` lists them.`)
    }
  } catch (error) {
    // People get a sentence; a stack is for what nobody foresaw.
    const told = error instanceof Usage || isOnceError(error)
    console.error(told ? `onceonly: ${error.message}` : error)
    return 2
  }
}
