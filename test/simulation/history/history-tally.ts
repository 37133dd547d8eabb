import type { Step } from './archive-model.ts'

/** Counts what happened to an archive in a run, for the report. */
export class HistoryTally {
  puts = 0
  expired = 0
  terms = 0
  deletedObjects = 0
  gapsAllowed = 0
  readonly #counts = new Map<string, number>()

  /** The pointer has moved. */
  moved(to: { readonly step: Step; readonly isSame: boolean; readonly isForward: boolean }): void {
    const { step, isSame, isForward } = to
    if (step !== 'followed') this.#add(step === 'skipped' ? 'gaps' : 'first reads', 1)
    else if (isSame) this.#add('positions', 1)
    else this.#add(isForward ? 'segments' : 'merges', 1)
  }

  ended(last: { readonly events: number; readonly missed: number; readonly files: number }): void {
    this.#add('events', last.events)
    this.#add('missed', last.missed)
    this.#add('files', last.files)
  }

  #add(name: string, count: number): void {
    this.#counts.set(name, (this.#counts.get(name) ?? 0) + count)
  }

  get outcomes(): ReadonlyMap<string, number> {
    return new Map([
      ['puts', this.puts],
      ['expired', this.expired],
      ['terms', this.terms],
      ['deleted objects', this.deletedObjects],
      ['compactions past the position', this.gapsAllowed],
      ...this.#counts,
    ])
  }
}
