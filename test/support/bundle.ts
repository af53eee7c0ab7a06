import { join } from 'node:path'
import { build, type Plugin } from 'vite'

/** The file does not exist: a plugin supplies the program. */
const entry = join(import.meta.dirname, 'bundled-program.js')

/** Bundles a program for browsers, as users of the package do. */
export async function bundle(
  program: string,
  options: { readonly plugins?: readonly Plugin[]; readonly minify?: boolean } = {},
): Promise<string> {
  const outputs = await build({
    configFile: false,
    logLevel: 'error',
    root: import.meta.dirname,
    resolve: { conditions: ['onceonly-source', 'module', 'browser'] },
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
