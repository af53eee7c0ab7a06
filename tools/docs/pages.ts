import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { env, root } from '../command.ts'
import { installLocked } from '../locked.ts'

const vitepress = join(root, 'tools/docs/site')

/** VitePress has a lock file of its own: a hundred megabytes that only this needs. */
export async function buildPages(folder: string): Promise<void> {
  const failure = await installLocked(vitepress, console.log)
  if (failure !== null) throw new Error(`VitePress cannot be installed:\n${failure}`)
  const program = join(vitepress, 'node_modules/vitepress/bin/vitepress.js')
  const child = spawn('node', [program, 'build', vitepress], {
    cwd: root,
    env: { ...env, ONCEONLY_SITE: folder },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const printed: Buffer[] = []
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => printed.push(chunk))
  const code = await new Promise((resolve, reject) => child.on('error', reject).on('close', resolve))
  if (code !== 0) throw new Error(`VitePress ended with ${code}:\n${Buffer.concat(printed).toString()}`)
}
