import { indentJson } from './json-form.ts'
import { sealedDocument } from './kube-protobuf.ts'
import { PROTOBUF, type Representation } from './representation.ts'
import { yamlOf } from './yaml.ts'

/** How a document that is not an event is written: a Status, or one of our own. */
export type DocumentForm = Pick<Representation, 'mediaType' | 'isPretty'>

/** Compact JSON ends with a newline, indented JSON does not. */
export function documentBody(form: DocumentForm, document: object): string | Buffer {
  if (form.mediaType === PROTOBUF) return sealedDocument(document)
  const text = JSON.stringify(document)
  if (form.mediaType === 'application/yaml') return yamlOf(JSON.parse(text))
  return form.isPretty ? indentJson(text) : `${text}\n`
}
