import { command } from '../../../../src/admin/cli/command.ts'

/** Runs the commands that it receives, one after the other, and sends back what each printed. */
process.on('message', (args) => {
  void ran(args as string[]).then((ended) => process.send?.(ended))
})

async function ran(args: readonly string[]): Promise<{ status: number; stdout: string; stderr: string }> {
  const printed = { stdout: '', stderr: '' }
  const writes = { stdout: process.stdout.write, stderr: process.stderr.write }
  for (const name of ['stdout', 'stderr'] as const) {
    process[name].write = (text: string | Uint8Array) => {
      printed[name] += String(text)
      return true
    }
  }
  try {
    return { status: await command(args), ...printed }
  } finally {
    process.stdout.write = writes.stdout
    process.stderr.write = writes.stderr
  }
}
