"""Tables, figures and pages from finished runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from longshift.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from longshift.report.figure_sections import (
        class_section as class_section,
        confusion_section as confusion_section,
        confusions_by_target as confusions_by_target,
        length_section as length_section,
        margin_section as margin_section,
        rank_section as rank_section,
        split_section as split_section,
        theory_section as theory_section,
        validation_section as validation_section,
    )
    from longshift.report.figures import (
        Absorption as Absorption,
        Drawing as Drawing,
        Line as Line,
        Misalignment as Misalignment,
        TrainingSet as TrainingSet,
        absorption_panels as absorption_panels,
        accuracy_grids as accuracy_grids,
        class_curves as class_curves,
        confidence_histogram as confidence_histogram,
        line_chart as line_chart,
        misalignment_panels as misalignment_panels,
        negative_bars as negative_bars,
        parameter_curves as parameter_curves,
        rank_diagram as rank_diagram,
        split_panels as split_panels,
    )
    from longshift.report.html_page import (
        Page as Page,
        Section as Section,
        figure as figure,
        join_html as join_html,
        paragraphs as paragraphs,
        run_section as run_section,
        table_html as table_html,
        table_section as table_section,
        write_page as write_page,
    )
    from longshift.report.latex_format import (
        LATEX_PACKAGES as LATEX_PACKAGES,
        latex_document as latex_document,
        latex_table as latex_table,
    )
    from longshift.report.markdown_format import escape as escape, markdown_table as markdown_table
    from longshift.report.missing_runs import Missing as Missing, find_missing as find_missing
    from longshift.report.published_results import (
        Published as Published,
        PublishedCorrelation as PublishedCorrelation,
        compare as compare,
        published as published,
    )
    from longshift.report.ranking import RANKED_ROWS as RANKED_ROWS, common_trials as common_trials
    from longshift.report.report_tables import (
        average_tables as average_tables,
        build_tables as build_tables,
        cost_tables as cost_tables,
        omitted_tables as omitted_tables,
        target_tables as target_tables,
        with_spread_note as with_spread_note,
        worst_tables as worst_tables,
    )
    from longshift.report.run_filters import (
        filter_runs as filter_runs,
        join_runs as join_runs,
        mixed_versions as mixed_versions,
        of_version as of_version,
    )
    from longshift.report.run_records import (
        Record as Record,
        domain_predictions as domain_predictions,
        run_folders as run_folders,
    )
    from longshift.report.saving import as_json as as_json, csv_tables as csv_tables, save_tables as save_tables
    from longshift.report.sweep_page import report_page as report_page, setting_section as setting_section
    from longshift.report.table import (
        Cell as Cell,
        Column as Column,
        Row as Row,
        Table as Table,
        float_or_none as float_or_none,
        method_rows as method_rows,
        slug as slug,
        with_places as with_places,
    )
    from longshift.report.table_registry import (
        ReportRuns as ReportRuns,
        register_table as register_table,
        table_kinds as table_kinds,
    )
    from longshift.report.terminal_format import print_report as print_report
    from longshift.report.theory import beside_published as beside_published
    from longshift.report.thumbnails import Captioned as Captioned, gallery as gallery
    from longshift.report.titles import (
        GROUPS as GROUPS,
        RULES as RULES,
        method_title as method_title,
        order_methods as order_methods,
        order_settings as order_settings,
    )
    from longshift.report.weak_page_section import LEARNED as LEARNED, weak_section as weak_section
    from longshift.report.weak_rule import (
        share_interval as share_interval,
        weak_below as weak_below,
        weak_indices as weak_indices,
    )

if TYPE_CHECKING:  # shared with the other packages of longshift, not public
    from longshift.report.figures import (
        ClassChange as ClassChange,
        SiteDots as SiteDots,
        class_changes as class_changes,
        site_dots as site_dots,
    )
    from longshift.report.findings import in_words as in_words, report_findings as report_findings
    from longshift.report.run_records import class_accuracy as class_accuracy, read_records as read_records

__all__, __getattr__, __dir__ = lazy_exports(__name__)
