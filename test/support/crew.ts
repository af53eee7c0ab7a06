import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { compiledFolder, root } from '../../tools/command.ts'

/** Child processes of one test. None of them outlives it. */
export interface Crew {
  start(program: Program): Child
  /** Kills the children that are left, and waits until they are gone. */
  end(): Promise<void>
}

export interface Program {
  /** Its address by `import.meta.resolve`: so it is known to be used. */
  readonly file: string
  readonly task: unknown
  /** Modules to load before it. */
  readonly before?: readonly string[]
  readonly env?: Readonly<Record<string, string>>
}

export interface Child {
  readonly pid: number
  /** The next line of that kind; each line is returned once. Rejects when the process ends without it. */
  heard<Line extends ChildLine = ChildLine>(kind: Line['kind']): Promise<Line>
  /** Every line of that kind that was not returned yet, without waiting. */
  heardSoFar<Line extends ChildLine = ChildLine>(kind: Line['kind']): Line[]
  /** One line to its standard input. */
  order(line: unknown): void
  signal(name: NodeJS.Signals): void
  readonly ended: Promise<Ended>
}

/** What a child prints: one JSON object per line. */
export interface ChildLine {
  readonly kind: string
}

export interface Ended {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly complaints: string
}

/** Longer than any child works, and shorter than the limit of a test, so that a child that hangs does not hang the test. */
const LIFE_MS = 240_000

export function createCrew(): Crew {
  const members = new Set<Child>()
  // A test process that is ended from outside must not leave them behind.
  const last = () => {
    for (const { pid } of members) tryKill(pid)
  }
  process.on('exit', last)
  return {
    start(program) {
      const child = launch(program)
      members.add(child)
      void child.ended.then(() => members.delete(child))
      return child
    },
    async end() {
      const left = [...members]
      // A stopped process does not notice a friendlier signal.
      for (const { pid } of left) tryKill(pid)
      await Promise.all(left.map(({ ended }) => ended))
      process.off('exit', last)
    },
  }
}

function tryKill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It is gone already.
  }
}

function launch({ file, task, before = [], env = {} }: Program): Child {
  const imports = before.flatMap((module) => ['--import', module])
  const flags = ['--conditions=onceonly-source', '--disable-warning=ExperimentalWarning', ...imports]
  const child = spawn(process.execPath, [...flags, fileURLToPath(file), JSON.stringify(task)], {
    cwd: root,
    env: { ...process.env, ...env, NODE_COMPILE_CACHE: compiledFolder },
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  const { pid } = child
  if (pid === undefined) throw new Error(`${file} could not be started`)
  const inbox = createInbox(file)
  const complaints: Buffer[] = []
  createInterface({ input: child.stdout }).on('line', (line) => inbox.put(JSON.parse(line) as ChildLine))
  child.stderr.on('data', (chunk: Buffer) => complaints.push(chunk))
  // A process that was killed cannot read the pending input.
  child.stdin.on('error', () => {})
  const bound = setTimeout(() => tryKill(pid), LIFE_MS)
  const ended = new Promise<Ended>((resolve) => {
    child.on('close', (code, signal) => {
      clearTimeout(bound)
      const end = { code, signal, complaints: Buffer.concat(complaints).toString() }
      inbox.close(end)
      resolve(end)
    })
  })
  return {
    pid,
    heard: <Line extends ChildLine>(kind: string) => inbox.take(kind) as Promise<Line>,
    heardSoFar: <Line extends ChildLine>(kind: string) => inbox.takeAll(kind) as Line[],
    order: (line) => void child.stdin.write(`${JSON.stringify(line)}\n`),
    signal: (name) => void child.kill(name),
    ended,
  }
}

interface Waiting {
  readonly kind: string
  resolve(line: ChildLine): void
  reject(error: Error): void
}

function createInbox(file: string) {
  const lines: ChildLine[] = []
  const waiting: Waiting[] = []
  let end: Ended | null = null

  function lost(kind: string): Error {
    const how = end?.signal ?? `code ${end?.code}`
    return new Error(`${file} ended by ${how} and never printed ${kind}:\n${end?.complaints}`)
  }

  return {
    put(line: ChildLine): void {
      const index = waiting.findIndex(({ kind }) => kind === line.kind)
      if (index < 0) lines.push(line)
      else waiting.splice(index, 1)[0]?.resolve(line)
    },
    take(kind: string): Promise<ChildLine> {
      const index = lines.findIndex((line) => line.kind === kind)
      if (index >= 0) return Promise.resolve(lines.splice(index, 1)[0] as ChildLine)
      if (end !== null) return Promise.reject(lost(kind))
      return new Promise((resolve, reject) => void waiting.push({ kind, resolve, reject }))
    },
    takeAll(kind: string): ChildLine[] {
      const found = lines.filter((line) => line.kind === kind)
      for (const line of found) lines.splice(lines.indexOf(line), 1)
      return found
    },
    close(how: Ended): void {
      end = how
      for (const { kind, reject } of waiting.splice(0)) reject(lost(kind))
    },
  }
}
