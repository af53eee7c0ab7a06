#!/usr/bin/env node
// The command of the package. In a checkout and in the image it runs the sources, which are never older than what was built.
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { constants } from 'node:os'
import { fileURLToPath } from 'node:url'

const at = (path) => fileURLToPath(new URL(`../${path}`, import.meta.url))

if (existsSync(at('src/admin/cli/main.ts'))) runSources()
else await import('../dist/admin/cli/main.js')

function runSources() {
  const args = ['--conditions=onceonly-source', at('src/admin/cli/main.ts'), ...process.argv.slice(2)]
  const child = spawn(process.execPath, args, { stdio: 'inherit' })
  // A signal to this process is meant for the child; a terminal signals both.
  for (const signal of ['SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal))
  process.on('SIGINT', () => process.stdin.isTTY || child.kill('SIGINT'))
  child.on('exit', (code, signal) => {
    process.exitCode = code ?? 128 + (constants.signals[signal] ?? 0)
  })
}
