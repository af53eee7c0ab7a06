/** A function of a CPU profile, as far as it is grouped by. */
export interface Frame {
  readonly functionName: string
  readonly url: string
}

const ROOT = new URL('../../../', import.meta.url).href
const PACKAGES = 'node_modules/'

/** The wing of the package that a function stands in; or the package of npm, or Node. */
export function groupOf({ functionName, url }: Frame): string {
  if (functionName === '(garbage collector)') return 'collector'
  if (url === '' || url.startsWith('native ')) return 'engine and kernel'
  if (url.startsWith('node:')) return 'node'
  const inPackage = url.lastIndexOf(PACKAGES)
  if (inPackage >= 0) {
    const [scope = '', name = ''] = url.slice(inPackage + PACKAGES.length).split('/')
    return scope.startsWith('@') ? `${scope}/${name}` : scope
  }
  const folders = pathOf(url).split('/').slice(0, -1)
  return folders[0] === 'src' ? folders.slice(1).join('/') : (folders[0] ?? url)
}

/** For people: where to look. */
export function fileOf({ url }: Frame): string {
  if (url.startsWith('node:') || url === '') return url
  return url.slice(url.lastIndexOf('/') + 1)
}

function pathOf(url: string): string {
  return url.startsWith(ROOT) ? url.slice(ROOT.length) : url
}
