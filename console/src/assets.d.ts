/** What the bundler makes of a picture: the address under which it is served. */
declare module '*.svg' {
  const address: string
  export default address
}

declare module '*.css' {}
