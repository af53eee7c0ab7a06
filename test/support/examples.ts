/** The blocks after `@example` in a source or a declaration, as an editor shows them. */
export function examplesOf(text: string): readonly string[] {
  return [...text.matchAll(/^[ \t]*\* @example\n[ \t]*\* ```ts\n(.*?)^[ \t]*\* ```$/gms)].map(([, block]) =>
    (block ?? '').replaceAll(/^[ \t]*\* ?/gm, ''),
  )
}
