/** There is no place for it; nothing of it was sent on. */
export class Crowded extends Error {
  constructor() {
    super('More requests are under way than there is room for.')
    this.name = 'Crowded'
  }
}
