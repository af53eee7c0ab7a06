import { spawn } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { env, root } from '../../tools/command.ts'

/** What one side measured in one round, by name: `requestsPerS`, `p99Ms`, … */
export type Figures = Readonly<Record<string, number>>

/** One side of a comparison: a program that is started anew for every round, and what it is told. */
export interface Side {
  /** The address of the program, by `import.meta.resolve`: so it is known to be used. */
  readonly program: string
  readonly task: unknown
}

const PROFILES = join(root, 'data', 'bench-profiles')
/** No round takes minutes; one that hangs must not look like one that is slow. */
const ROUND_BOUND_MS = 15 * 60_000

/**
 * Runs a side in a process of its own: nothing that the other side did to the heap, to the compiler or to open files
 * can help or hurt it.
 */
export async function runSide({ program, task }: Side, profile: boolean, signal: AbortSignal): Promise<Figures> {
  const file = fileURLToPath(program)
  const flags = ['--conditions=onceonly-source', '--expose-gc', '--disable-warning=ExperimentalWarning']
  if (profile) {
    mkdirSync(PROFILES, { recursive: true })
    const name = `${basename(dirname(file))}-${basename(file, '.ts')}-${Date.now()}.cpuprofile`
    flags.push('--cpu-prof', `--cpu-prof-dir=${PROFILES}`, `--cpu-prof-name=${name}`)
  }
  const output = await run([...flags, file, JSON.stringify(task)], signal)
  const line = output.trimEnd().split('\n').at(-1) ?? ''
  return figuresOf(file, line)
}

function run(args: readonly string[], signal: AbortSignal): Promise<string> {
  return new Promise((resolve, reject) => {
    const bounded = AbortSignal.any([signal, AbortSignal.timeout(ROUND_BOUND_MS)])
    const child = spawn(process.execPath, args, { cwd: root, env, stdio: ['ignore', 'pipe', 'pipe'], signal: bounded })
    const told: Buffer[] = []
    const complained: Buffer[] = []
    let failure: Error | null = null
    child.stdout.on('data', (chunk: Buffer) => told.push(chunk))
    child.stderr.on('data', (chunk: Buffer) => complained.push(chunk))
    child.on('error', (error) => {
      failure = error
    })
    // Not before it is gone: its files are removed next.
    child.on('close', (status) => {
      if (status === 0) resolve(Buffer.concat(told).toString())
      else reject(failure ?? new Error(`A side ended with ${status}:\n${Buffer.concat(complained)}`))
    })
  })
}

function figuresOf(file: string, line: string): Figures {
  const figures = JSON.parse(line) as Figures
  for (const [name, figure] of Object.entries(figures)) {
    if (!Number.isFinite(figure)) throw new Error(`${basename(file)} measured ${name} = ${figure}.`)
  }
  return figures
}
