#!/usr/bin/env node
/** Checks the version of Node before anything is loaded that an older one cannot parse. */
const OLDEST = [22, 19] as const

const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
if (major < OLDEST[0] || (major === OLDEST[0] && minor < OLDEST[1])) {
  console.error(`onceonly needs Node ${OLDEST.join('.')} or newer; this is ${process.versions.node}.`)
  process.exitCode = 2
} else {
  const { command } = await import('./command.ts')
  // A reader such as `head` may close the pipe: the command is finished all the same.
  for (const stream of [process.stdout, process.stderr]) {
    stream.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EPIPE') throw error
    })
  }
  process.exitCode = await command(process.argv.slice(2))
}
