import { readFile } from 'node:fs/promises'
import { isOnceError } from '../../ledger/core/errors.ts'
import { commands } from './commands.ts'
import { Usage } from './usage.ts'

/** The exit status: 0 when all is well, 1 when something was found, 2 when nothing could be done. */
export async function command(args: readonly string[]): Promise<number> {
  const [name, ...rest] = args
  if (name === undefined || name === 'help' || name === '--help' || name === '-h') {
    process.stdout.write(help())
    return name === undefined ? 2 : 0
  }
  if (name === 'version' || name === '--version' || name === '-v') {
    process.stdout.write(`${await version()}\n`)
    return 0
  }
  try {
    const found = Object.hasOwn(commands, name) ? commands[name] : undefined
    if (found === undefined) throw new Usage(`There is no command \`${name}\`. \`onceonly --help\` lists them.`)
    const run = await found.load()
    return await run(rest)
  } catch (error) {
    // People get a sentence; a stack is for what nobody foresaw.
    const told = error instanceof Usage || isOnceError(error)
    console.error(told ? `onceonly: ${error.message}` : error)
    return 2
  }
}

/** Of the package that this file is in, built or not. */
async function version(): Promise<string> {
  const file = await readFile(new URL('../../../package.json', import.meta.url), 'utf8')
  return (JSON.parse(file) as { readonly version: string }).version
}

function help(): string {
  const heads = Object.entries(commands).map(([name, { usage }]) => `${name} ${usage}`.trimEnd())
  const width = Math.max(...heads.map((head) => head.length))
  const lines = Object.values(commands).map(({ about }, index) => `  ${heads[index]?.padEnd(width)}   ${about}`)
  return `onceonly COMMAND

${lines.join('\n')}

\`onceonly COMMAND --help\` tells more, \`onceonly --version\` which version this is.
`
}
