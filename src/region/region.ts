/** Which regions there are, and which one this is. */
export interface RegionOptions {
  readonly self: string
  /** Every region by its name, this one too, with the URL under which the others reach it. */
  readonly regions: Readonly<Record<string, string>>
  /** Known to all regions and to nobody else: a request that another region sent on is believed by it. */
  readonly secret: string
}

export interface RegionFault {
  /** A member of the options, or nothing for all of them. */
  readonly path: string
  readonly what: string
}

/** Short enough to be guessed would be as good as none. */
const LEAST_SECRET_CHARS = 32

/** What is wrong with the options of a region. */
export function regionFaults(given: unknown): RegionFault[] {
  if (typeof given !== 'object' || given === null || Array.isArray(given))
    return [{ path: '', what: 'is not an object' }]
  const { self, regions, secret, ...rest } = given as Readonly<Record<string, unknown>>
  const faults: RegionFault[] = Object.keys(rest).map((path) => ({ path, what: 'is not a setting' }))
  if (typeof secret !== 'string' || secret.length < LEAST_SECRET_CHARS) {
    faults.push({ path: 'secret', what: `is not a text of at least ${LEAST_SECRET_CHARS} characters` })
  }
  if (typeof regions !== 'object' || regions === null || Array.isArray(regions)) {
    return [...faults, { path: 'regions', what: 'is not a table of names and URLs' }]
  }
  for (const [name, url] of Object.entries(regions)) {
    const fits = typeof url === 'string' && URL.canParse(url) && /^https?:$/.test(new URL(url).protocol)
    if (!/^[\w-]{1,64}$/.test(name))
      faults.push({ path: `regions.${name}`, what: 'is not a name of letters and digits' })
    if (!fits) faults.push({ path: `regions.${name}`, what: 'is not an http or https URL' })
  }
  if (typeof self !== 'string' || !Object.hasOwn(regions, self))
    faults.push({ path: 'self', what: 'is none of the regions' })
  return faults
}
