import { indentJson } from './encoders/json-indent.ts'
import { PROTOBUF, type Representation } from './representation.ts'
import { encodeDocument } from './struct/kube-protobuf.ts'
import { yamlOf } from './yaml/yaml.ts'

/** The format of a document that is not an event: a Status, discovery, a review and so on. */
export type DocumentFormat = Pick<Representation, 'mediaType' | 'isPretty'>

/** Compact JSON ends with a newline, indented JSON does not. */
export function documentBody(format: DocumentFormat, document: object): string | Buffer {
  if (format.mediaType === PROTOBUF) return encodeDocument(document)
  const text = JSON.stringify(document)
  if (format.mediaType === 'application/yaml') return yamlOf(JSON.parse(text))
  return format.isPretty ? indentJson(text) : `${text}\n`
}
