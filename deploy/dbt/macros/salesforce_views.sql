{# Runs the file _views.sql, which the exporter replaces when columns are added. #}
{% macro salesforce_views() %}
  {% if execute and on_files() %}
    {% set path = env_var('SALESFORCE_VIEWS', 'out/sales/_views.sql') %}
    {% do run_query(run_query("select content from read_text('" ~ path ~ "')").columns[0].values()[0]) %}
  {% endif %}
{% endmacro %}
