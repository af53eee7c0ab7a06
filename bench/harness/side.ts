import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable, Writable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { env, root } from '../../tools/command.ts'
import type { Figures, Pair } from './figures.ts'
import { GO, READY } from './turns.ts'

/** One side of a comparison: a program that is started again for every round, and its input. */
export interface Side {
  /** The address of the program, by `import.meta.resolve`: so it is known to be used. */
  readonly program: string
  readonly task: unknown
}

export interface RunOptions {
  readonly profile: boolean
  readonly signal: AbortSignal
}

const PROFILES = join(root, 'data', 'bench-profiles')
/** No round takes minutes; one that hangs must not look like one that is slow. */
const ROUND_BOUND_MS = 15 * 60_000

/**
 * Runs a side in a process of its own: nothing that the other side did to the heap, to the compiler or to open files
 * can help or hurt it.
 */
export function runSide(side: Side, options: RunOptions): Promise<Figures> {
  return start(side, options).ended
}

/** Two sides, each in a fresh process, that take turns in slices of one round. */
export async function runSideBySide(
  sides: { readonly ours: Side; readonly other: Side },
  slices: number,
  oursFirst: boolean,
  options: RunOptions,
): Promise<Pair> {
  const stop = new AbortController()
  const both = { ...options, signal: AbortSignal.any([options.signal, stop.signal]) }
  const ours = start(sides.ours, both)
  const other = start(sides.other, both)
  try {
    // Once for the warm-up, then for every slice, then for what each has to close.
    for (let turn = 0; turn < slices + 2; turn++) {
      const order = (turn % 2 === 0) === oursFirst ? [ours, other] : [other, ours]
      for (const each of order) await each.turn()
    }
    return { ours: await ours.ended, other: await other.ended }
  } catch (error) {
    stop.abort()
    await Promise.allSettled([ours.ended, other.ended])
    throw error
  }
}

interface Started {
  /** Lets it have a turn, and waits for the end of that turn. */
  turn(): Promise<void>
  readonly ended: Promise<Figures>
}

function start({ program, task }: Side, { profile, signal }: RunOptions): Started {
  const file = fileURLToPath(program)
  const args = [...flagsFor(file, profile), file, JSON.stringify(task)]
  const bounded = AbortSignal.any([signal, AbortSignal.timeout(ROUND_BOUND_MS)])
  const child = spawn(process.execPath, args, { cwd: root, env, stdio: ['pipe', 'pipe', 'pipe'], signal: bounded })
  // A pipe that breaks because the side has failed has nothing to add to that.
  child.stdin.on('error', () => {})
  let last = ''
  let ready = Promise.withResolvers<void>()
  createInterface({ input: child.stdout }).on('line', (line) => {
    if (line === READY) ready.resolve()
    else last = line
  })
  const ended = endOf(child).then(() => figuresOf(file, last))
  // It may fail during the other side's turn; the next wait for it reports the error.
  ended.catch(() => {})
  return {
    ended,
    turn: async () => {
      await Promise.race([ready.promise, ended])
      ready = Promise.withResolvers()
      child.stdin.write(`${GO}\n`)
      await Promise.race([ready.promise, ended])
    },
  }
}

function flagsFor(file: string, profile: boolean): string[] {
  const flags = ['--conditions=onceonly-source', '--expose-gc', '--disable-warning=ExperimentalWarning']
  if (!profile) return flags
  mkdirSync(PROFILES, { recursive: true })
  const name = `${basename(dirname(file))}-${basename(file, '.ts')}-${Date.now()}.cpuprofile`
  return [...flags, '--cpu-prof', `--cpu-prof-dir=${PROFILES}`, `--cpu-prof-name=${name}`]
}

/** Not before it is gone: its files are removed next. */
function endOf(child: ChildProcessByStdio<Writable, Readable, Readable>): Promise<void> {
  return new Promise((resolve, reject) => {
    const complained: Buffer[] = []
    let failure: Error | null = null
    child.stderr.on('data', (chunk: Buffer) => complained.push(chunk))
    child.on('error', (error) => {
      failure = error
    })
    child.on('close', (status) => {
      if (status === 0) resolve()
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
