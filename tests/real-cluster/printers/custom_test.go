package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresource/tableconvertor"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// custom is a document of objects/custom: the columns of a definition, and objects.
type custom struct {
	Columns []apiextensionsv1.CustomResourceColumnDefinition `json:"columns"`
	Objects []json.RawMessage                                `json:"objects"`
}

// customRow is a line of custom.jsonl and paths.jsonl.
type customRow struct {
	Columns     []apiextensionsv1.CustomResourceColumnDefinition `json:"columns"`
	Definitions []metav1.TableColumnDefinition                   `json:"definitions"`
	Cells       []any                                            `json:"cells"`
	Object      json.RawMessage                                  `json:"object"`
}

// writeCustom writes the rows of the custom resources written by hand.
func writeCustom(w io.Writer) error {
	return documents("objects/custom/*.yaml", func(document []byte) error {
		var it custom
		if err := json.Unmarshal(document, &it); err != nil {
			return err
		}
		for _, object := range it.Objects {
			if err := writeCustomRow(w, it.Columns, object); err != nil {
				return err
			}
		}
		return nil
	})
}

// orAge is what the server of custom resources does if a definition has no columns.
func orAge(columns []apiextensionsv1.CustomResourceColumnDefinition) []apiextensionsv1.CustomResourceColumnDefinition {
	if len(columns) > 0 {
		return columns
	}
	return []apiextensionsv1.CustomResourceColumnDefinition{{
		Name:        "Age",
		Type:        "date",
		Description: metav1.ObjectMeta{}.SwaggerDoc()["creationTimestamp"],
		JSONPath:    ".metadata.creationTimestamp",
	}}
}

func writeCustomRow(w io.Writer, columns []apiextensionsv1.CustomResourceColumnDefinition, document json.RawMessage) error {
	// A path that cannot be read is reported, and the columns before it are served.
	convertor, _ := tableconvertor.New(orAge(columns))
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(document); err != nil {
		return err
	}
	table, err := convertor.ConvertToTable(context.Background(), object, nil)
	if err != nil {
		return err
	}
	if len(table.Rows) != 1 {
		return fmt.Errorf("%d rows", len(table.Rows))
	}
	return writeLine(w, customRow{columns, table.ColumnDefinitions, table.Rows[0].Cells, document})
}
