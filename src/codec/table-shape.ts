import { formatVersion } from '../storage/resource-version.ts'
import type { ShownEvent } from './event-bytes.ts'
import {
  type Around,
  type EventShape,
  type EventWriter,
  type ListMeta,
  listMetaText,
} from './event-shapes.ts'
import { jsonOf } from './json-write.ts'
import type { MetaVersion } from './representation.ts'
import { eventCells, eventColumns } from './table.ts'

export interface TableOptions {
  readonly metaVersion: MetaVersion
  /** What an event looks like beside its cells; undefined when cells are all that is wanted. */
  readonly rowObject: EventShape | undefined
  /** The wall clock in milliseconds. */
  readonly now: () => number
}

const columnsText: string = JSON.stringify(eventColumns)

/** Events as rows of printed columns. An object on its own is a table of one row. */
export class TableShape implements EventShape {
  /** Events grow older. */
  readonly isLasting = false
  readonly listName = 'rows'
  readonly emptyList = '[]'
  readonly #options: TableOptions
  readonly #columns: string
  readonly #rowObject: EventWriter | undefined

  constructor(options: TableOptions, columns: string = columnsText) {
    this.#options = options
    this.#columns = columns
    this.#rowObject = options.rowObject?.writer()
  }

  /** For whoever has been told the columns already. */
  withoutColumns(): TableShape {
    return new TableShape(this.#options, 'null')
  }

  listStart(meta: ListMeta): string {
    const { metaVersion } = this.#options
    return `{"kind":"Table","apiVersion":"meta.k8s.io/${metaVersion}","metadata":${listMetaText(meta)},"columnDefinitions":${this.#columns},"rows":`
  }

  entries(events: readonly ShownEvent[], before: string): Buffer {
    return Buffer.from(before + events.map((event) => this.#row(event)).join(','))
  }

  writer(around: Around = { before: '', after: '' }): EventWriter {
    return (event) => {
      const { version } = event
      const resourceVersion = version === undefined ? undefined : formatVersion(version)
      const table = `${this.listStart({ resourceVersion })}[${this.#row(event)}]}`
      return Buffer.from(around.before + table + around.after)
    }
  }

  #row(event: ShownEvent): string {
    const cells = eventCells(JSON.parse(event.body.toString()), this.#options.now())
    const object = this.#rowObject?.(event).toString() ?? 'null'
    return `{"cells":${jsonOf(cells)},"object":${object}}`
  }
}
