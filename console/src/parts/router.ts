import { useEffect, useState } from 'preact/hooks'

/** Where the page is: the parts of the path below `/console`, and the query. */
export interface Location {
  readonly parts: readonly string[]
  readonly query: URLSearchParams
}

const base = '/console'
const moved = 'onceonly-moved'

export function locationOf(path: string, search: string): Location {
  const below = path.startsWith(base) ? path.slice(base.length) : path
  const parts = below.split('/').filter((part) => part !== '')
  return { parts: parts.map(decoded), query: new URLSearchParams(search) }
}

/** A broken escape is taken as it is written: the page then says that there is nothing. */
function decoded(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}

/** The address of a place in the console; empty values of the query are left out. */
export function addressOf(parts: readonly string[], query: Readonly<Record<string, string>> = {}): string {
  const given = Object.entries(query).filter(([, value]) => value !== '')
  const search = given.length === 0 ? '' : `?${new URLSearchParams(given).toString()}`
  return [base, ...parts.map(encodeURIComponent)].join('/') + search
}

export function navigate(address: string, how: 'push' | 'replace' = 'push'): void {
  if (how === 'push') history.pushState(null, '', address)
  else history.replaceState(null, '', address)
  window.dispatchEvent(new Event(moved))
  if (how === 'push') window.scrollTo(0, 0)
}

export function useLocation(): Location {
  const [current, setCurrent] = useState(() => locationOf(location.pathname, location.search))
  useEffect(() => {
    const follow = () => setCurrent(locationOf(location.pathname, location.search))
    window.addEventListener('popstate', follow)
    window.addEventListener(moved, follow)
    return () => {
      window.removeEventListener('popstate', follow)
      window.removeEventListener(moved, follow)
    }
  }, [])
  return current
}

/** Links of the console change the place without loading the page again; modified clicks still open a new tab. */
export function followLinks(): void {
  document.addEventListener('click', (event) => {
    if (event.defaultPrevented || event.button !== 0) return
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return
    const link = event.target instanceof Element ? event.target.closest('a') : null
    if (link === null || link.target !== '' || link.origin !== location.origin) return
    if (link.pathname !== base && !link.pathname.startsWith(`${base}/`)) return
    event.preventDefault()
    navigate(link.pathname + link.search)
  })
}
