import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'
import { freePorts } from '../../../tools/servers/server.ts'
import { root } from './packed.ts'

const LONGEST_MS = 240_000

/**
 * Does what the page says, block by block: installs at once, and answers what does the rest. Three things differ: the
 * package is the archive, because what is published is older; express is the version that we know; the port is a free one.
 */
export function installByStartPage(folder: string, archive: string, node: string): () => Promise<void> {
  const page = readFileSync(join(root, 'docs/start.md'), 'utf8')
  const blocks = [...page.matchAll(/^```(?:sh|js)\n(.*?)^```$/gms)].map(([, code]) => code ?? '')
  assert.equal(blocks.length, 4)
  const [install = '', server = '', run = '', ask = ''] = blocks
  const { version } = JSON.parse(readFileSync(join(root, 'node_modules/express/package.json'), 'utf8')) as {
    version: string
  }
  const env = { ...process.env, PATH: [dirname(node), process.env['PATH']].join(delimiter) }
  const options = { cwd: folder, env, encoding: 'utf8', timeout: LONGEST_MS, stdio: 'pipe' } as const
  const shell: Shell = (script) => execFileSync('sh', ['-ec', script], options)

  async function start(): Promise<() => Promise<void>> {
    const child = spawn('sh', ['-c', `exec ${run}`], { cwd: folder, env, stdio: ['ignore', 'pipe', 'inherit'] })
    const [said] = (await once(child.stdout, 'data')) as [Buffer]
    assert.match(said.toString(), /listening/)
    return async () => {
      const gone = once(child, 'close')
      child.kill('SIGKILL')
      await gone
    }
  }

  shell(install.replace('onceonly express', `--prefer-offline ${archive} express@${version}`))
  return async () => {
    const [port = 0] = await freePorts(1)
    const here = (text: string) => text.replaceAll('3000', String(port))
    writeFileSync(join(folder, 'server.js'), here(server))
    for (const questions of [askTwice, askAfterwards]) {
      const kill = await start()
      try {
        questions(shell, here(ask))
      } finally {
        await kill()
      }
    }
  }
}

type Shell = (script: string) => string

const REPLAYED = /^HTTP\/1\.1 201[^]*Idempotent-Replayed: true[^]*\{"id":1\}$/i

function askTwice(shell: Shell, ask: string): void {
  const first = shell(ask)
  assert.match(first, /^HTTP\/1\.1 201[^]*\{"id":1\}$/)
  assert.doesNotMatch(first, /idempotent-replayed/i)
  assert.match(shell(ask), REPLAYED)
}

/** The server was killed and started again. */
function askAfterwards(shell: Shell, ask: string): void {
  assert.match(shell(ask), REPLAYED)
  assert.match(shell(ask.replace('a book', 'a boat')), /^HTTP\/1\.1 409/)
  assert.match(shell(ask.replace("-H 'idempotency-key: click-1'", '')), /^HTTP\/1\.1 400/)
  assert.match(shell(ask.replace('click-1', 'click-2')), /\{"id":2\}$/)
}
