import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { appendFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { root } from '../../tools/command.ts'

/** What a guide has its reader do. */
export type GuideStep =
  | { readonly kind: 'shell'; readonly text: string }
  /** `added`: to the end of a file that a command has made. */
  | { readonly kind: 'file'; readonly path: string; readonly text: string; readonly added: boolean }

/** The commands and files of a guide, in its order; of a part of it, from a line that begins with a text to another. */
export function stepsOf(guide: string, from = '', to = ''): readonly GuideStep[] {
  const page = readFileSync(join(root, 'docs/guides', guide), 'utf8')
  const start = page.indexOf(from)
  const end = to === '' ? page.length : page.indexOf(to, start)
  assert.ok(start >= 0 && end > start, `${guide} has no part from ${from} to ${to}`)
  const blocks = page.slice(start, end).matchAll(/((?:[^\n]+\n)+)\n```(\w+)\n([^]*?\n)```/g)
  return [...blocks].flatMap(([, said = '', language, text = '']): GuideStep[] => {
    if (language === 'sh') return [{ kind: 'shell', text }]
    const [, path] = /`((?:src|prisma)\/[\w./-]+)`/.exec(said) ?? []
    return path === undefined ? [] : [{ kind: 'file', path, text, added: said.startsWith('Add ') }]
  })
}

export interface Reader {
  /** Runs the lines of a block, and stays in the folder that they have changed to. Answers what they printed. */
  run(text: string): Promise<string>
  write(step: GuideStep & { readonly kind: 'file' }): void
  /** Runs a command that serves, for as long as the work takes: it ends as by `kill -9`. */
  serving<T>(text: string, work: () => Promise<T>): Promise<T>
}

export interface ReaderOptions {
  /** A folder with locked packages: `npm install` and `npx` take them from there, in the versions that we know. */
  readonly packages: string
  /** The package `onceonly` as it is published, unpacked. */
  readonly onceonly: string
  readonly env: Readonly<Record<string, string>>
}

const LONGEST_MS = 120_000

/** A reader of a guide, with an empty folder and a shell of its own. Nothing is downloaded. */
export function openReader({ packages, onceonly, env: given }: ReaderOptions): Reader & AsyncDisposable {
  const folder = mkdtempSync(join(tmpdir(), 'onceonly-reader-'))
  const bin = join(folder, '.bin')
  mkdirSync(bin)
  const command = (name: string, script: string) =>
    writeFileSync(join(bin, name), `#!/bin/sh\n${script}\n`, { mode: 0o755 })
  const install = join(import.meta.dirname, 'guide-install.ts')
  command('npm', `[ "$1" = install ] && exec node '${install}' '${packages}' '${onceonly}' "$@"\nexec npm-itself "$@"`)
  command('npm-itself', `PATH="\${PATH#*${delimiter}}"; exec npm "$@"`)
  command(
    'npx',
    [
      '[ "$1" = --yes ] && shift',
      'name=$1; shift',
      // The program of a package with another name; and what a program would fetch by itself, and can do without.
      'case "$name" in @nestjs/cli) name=nest ;; skills@*) exit 1 ;; esac',
      `exec '${join(packages, 'node_modules/.bin')}'/"$name" "$@"`,
    ].join('\n'),
  )
  const { NODE_TEST_CONTEXT: _, NODE_OPTIONS: __, ...inherited } = process.env
  const env = { ...inherited, ...given, PATH: [bin, dirname(process.execPath), inherited['PATH']].join(delimiter) }
  let cwd = join(folder, 'empty')
  mkdirSync(cwd)
  return {
    async run(text) {
      const how = { cwd, env, timeout: LONGEST_MS, killSignal: 'SIGKILL' } as const
      const running = promisify(execFile)('sh', ['-ec', `${text}\npwd >'${folder}/cwd'`], how)
      // A question would wait for its answer.
      running.child.stdin?.end()
      const { stdout } = await running
      cwd = readFileSync(join(folder, 'cwd'), 'utf8').trim()
      return stdout
    },
    write({ path, text, added }) {
      const file = join(cwd, path)
      mkdirSync(dirname(file), { recursive: true })
      if (added) assert.ok(existsSync(file), `${path} is to be added to, and is not there`)
      if (added) appendFileSync(file, text)
      else writeFileSync(file, text)
    },
    async serving(text, work) {
      const child = spawn('sh', ['-ec', text], { cwd, env, stdio: ['ignore', 'pipe', 'inherit'], detached: true })
      const gone = once(child, 'close')
      try {
        let said = ''
        const listens = new Promise<void>((resolve) => {
          child.stdout.on('data', (chunk) => {
            said += String(chunk)
            if (/listening/i.test(said)) resolve()
          })
        })
        await Promise.race([listens, gone.then(() => assert.fail(`it ended before it listened: ${said}`))])
        return await work()
      } finally {
        // With whatever it has started itself.
        if (child.exitCode === null && child.signalCode === null) process.kill(-(child.pid ?? 0), 'SIGKILL')
        await gone
      }
    },
    async [Symbol.asyncDispose]() {
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
