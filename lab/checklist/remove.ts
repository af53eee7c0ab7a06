import { registerHooks } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { REMOVAL_VARIABLE, type Removal } from './row.ts'

/** Preloaded into every process of a test: the file is loaded without its rule, and nothing on the disk changes. */
const removal = JSON.parse(process.env[REMOVAL_VARIABLE] ?? 'null') as Removal | null

if (removal !== null) {
  const target = pathToFileURL(join(import.meta.dirname, '../..', removal.file)).href
  registerHooks({
    load(url, context, next) {
      const loaded = next(url, context)
      if (url.split('?')[0] !== target) return loaded
      return { ...loaded, source: String(loaded.source).replace(removal.find, () => removal.replace) }
    },
  })
}
