import { type AnswerForm, answerForm } from './answer-form.ts'
import { type EventShape, type EventView, PartialShape, WholeShape } from './event-shapes.ts'
import { protobufAnswer, protobufWatch } from './protobuf-forms.ts'
import { PROTOBUF, type Representation } from './representation.ts'
import { TableShape } from './table-shape.ts'
import { type WatchForm, watchForm } from './watch-form.ts'

/** The two ways of telling that one watch needs; the same object unless it is a watch of tables. */
export interface WatchForms {
  /** For the very first frame of a watch and no other. */
  readonly first: WatchForm
  readonly next: WatchForm
}

/**
 * All the ways in which events of one group are shown. There are few enough of them to keep each
 * that was ever asked for; and frames are shared only between those who hold the same form.
 */
export class EventForms {
  readonly #view: EventView
  readonly #now: () => number
  readonly #answers = new Map<string, AnswerForm>()
  readonly #watches = new Map<string, WatchForms>()

  /** `now` is the wall clock in milliseconds, for the ages in tables. */
  constructor(view: EventView, now: () => number) {
    this.#view = view
    this.#now = now
  }

  answer(wanted: Representation): AnswerForm {
    const key = `${shapeKey(wanted)} ${wanted.mediaType} ${wanted.isPretty}`
    let form = this.#answers.get(key)
    if (form === undefined) {
      form =
        wanted.mediaType === PROTOBUF
          ? protobufAnswer(this.#view, wanted)
          : answerForm(this.#shape(wanted), wanted)
      this.#answers.set(key, form)
    }
    return form
  }

  /** In protobuf, or one line of JSON a frame whatever else is wanted. */
  watch(wanted: Representation): WatchForms {
    const isProtobuf = wanted.mediaType === PROTOBUF
    const key = `${shapeKey(wanted)} ${isProtobuf}`
    let forms = this.#watches.get(key)
    if (forms === undefined) {
      forms = isProtobuf
        ? sameForms(protobufWatch(this.#view, wanted))
        : watchForms(this.#shape(wanted))
      this.#watches.set(key, forms)
    }
    return forms
  }

  #shape(wanted: Representation): EventShape {
    const { as, metaVersion, includeObject } = wanted
    const whole = new WholeShape(this.#view)
    if (as === 'object') return whole
    const partial = new PartialShape(metaVersion)
    if (as === 'partial') return partial
    const rowObject = { None: undefined, Metadata: partial, Object: whole }[includeObject]
    return new TableShape({ metaVersion, rowObject, now: this.#now })
  }
}

function shapeKey({ as, metaVersion, includeObject }: Representation): string {
  return `${as} ${metaVersion} ${includeObject}`
}

function sameForms(form: WatchForm): WatchForms {
  return { first: form, next: form }
}

function watchForms(shape: EventShape): WatchForms {
  const first = watchForm(shape)
  return { first, next: shape instanceof TableShape ? watchForm(shape.withoutColumns()) : first }
}
