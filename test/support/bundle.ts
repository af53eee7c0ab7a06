import { join } from 'node:path'
import { build, type Plugin } from 'vite'

interface BundleOptions {
  readonly plugins?: readonly Plugin[]
  readonly minify?: boolean
  /** A project that has the package installed, in place of the sources. */
  readonly project?: string
}

/** Bundles a program for browsers, as users of the package do. */
export async function bundle(program: string, options: BundleOptions = {}): Promise<string> {
  const { project } = options
  // The file does not exist: a plugin supplies the program.
  const entry = join(project ?? import.meta.dirname, 'bundled-program.js')
  const outputs = await build({
    configFile: false,
    logLevel: 'error',
    root: project ?? import.meta.dirname,
    resolve: { conditions: [...(project === undefined ? ['onceonly-source'] : []), 'module', 'browser'] },
    plugins: [
      {
        name: 'entry',
        enforce: 'pre',
        resolveId: (id) => (id === entry ? id : undefined),
        load: (id) => (id === entry ? program : undefined),
      },
      ...(options.plugins ?? []),
    ],
    build: { write: false, ...minified(options.minify), lib: { entry, formats: ['es'], fileName: 'bundle' } },
  })
  const all = Array.isArray(outputs) ? outputs : [outputs]
  return all
    .flatMap((each) => ('output' in each ? each.output : []))
    .map((chunk) => (chunk.type === 'chunk' ? chunk.code : ''))
    .join('')
}

const minified = (minify: boolean | undefined) => (minify === undefined ? {} : { minify })
